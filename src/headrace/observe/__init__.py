"""What is happening: telemetry, and what other systems already know, as measured sections."""
