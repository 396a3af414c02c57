"""Pages that people read: sections of plain data, made of records, and their renderers."""
