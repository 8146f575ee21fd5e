"""A small demonstration voice: the texts it learns from and is tested on."""
