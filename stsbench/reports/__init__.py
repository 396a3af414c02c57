"""Report pages: sections of plain data, made from records, and their renderers."""
