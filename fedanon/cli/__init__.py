"""The command line. Heavy modules are imported inside the commands, so that `fedanon --help` is instant."""

#: exit codes beside those of errors (fedanon.errors)
INTERNAL_ERROR = 70
INTERRUPTED = 130
