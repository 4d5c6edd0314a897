"""How answers leave: from what an app returned to bytes."""
