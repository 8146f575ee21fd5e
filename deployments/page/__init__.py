"""The sources of the page at ``/``. ``deployments.routes.page`` puts them into one document."""
