"""The steward's app: a local web page from a file to a verified release and its report.

Everything it does is the library's: a long job is a command of `fedanon`, which the page shows; what is quick is asked
of one helper process. The server itself imports neither pandas nor a method, so that the first page comes at once.
"""
