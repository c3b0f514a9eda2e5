"""The text of web pages and PDF files, read in a process of its own."""

from ._document_text import DocumentText, ReaderLimits, page_text, pdf_text

__all__ = ["DocumentText", "ReaderLimits", "page_text", "pdf_text"]
