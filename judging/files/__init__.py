"""Files of rows and pictures: read, measured, written."""
