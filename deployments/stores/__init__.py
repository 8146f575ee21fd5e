"""What is kept on disk for clients: recorded voices, and answers for later turns."""
