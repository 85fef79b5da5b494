"""Figures as plain data: pure functions of results, no Streamlit."""
