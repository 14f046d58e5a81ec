"""Harbor task directories (schema 1.4) read into tasks and written from them."""
