"""Find the releases of a package that leak. An event is learned on one release; the same event is
then tested on every release. Each release is installed in an environment of its own."""
