"""Makes what is generated in the chart: Grafana's dashboards and the schema of its values."""
