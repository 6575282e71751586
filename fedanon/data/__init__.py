"""What a table is: its schema, hierarchies, coded columns, groups of rows and cells."""
