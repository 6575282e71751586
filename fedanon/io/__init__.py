"""In and out: tables read from files, releases written with their manifests, the audit log. Writes are atomic."""
