"""Messages: turns changes of alerts into messages and delivers each once to every channel."""
