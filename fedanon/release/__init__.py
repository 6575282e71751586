"""What was published: releases, views of released files, recoding of new rows, and the one gate."""
