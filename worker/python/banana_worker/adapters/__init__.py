"""One file per way of writing an app; each turns an app into a `LoadedApp`."""
