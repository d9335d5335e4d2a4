"""The search for neighbouring inputs on which a mechanism leaks most."""
