"""The functions of the course *Sound in Frames*."""
