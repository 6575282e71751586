"""The command line. Heavy modules are imported inside the commands, so that `fedanon --help` is instant."""

#: exit codes
USAGE_ERROR = 2
INTERNAL_ERROR = 3
