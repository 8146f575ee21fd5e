"""Text to speech as its clients ask for it: the body, the WebSocket's session, the sound."""
