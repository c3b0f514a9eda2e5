"""The kind of an attachment, by content and name, and secrets in attachments."""

from base64 import b64decode, b64encode

import pytest
from pydantic import ValidationError
from sideband.broker import Redaction
from sideband.messages import AudioPart, FilePart, ImagePart, ImageUrlPart
from sideband_agent import LARGEST_ATTACHMENT, AttachmentRefused, attachment_of
from sideband_agent._attachments import check_attachment

SECRET = "hunter2-hunter2-hunter2"


@pytest.fixture
def redactor():
    one = Redaction()
    one.protect(SECRET, "github")
    return one


@pytest.mark.parametrize(
    ("name", "start", "kind", "media_type"),
    [
        ("a", b"\x89PNG\r\n\x1a\n", ImagePart, "image/png"),
        ("a", b"\xff\xd8\xff\xe0", ImagePart, "image/jpeg"),
        ("a", b"GIF89a", ImagePart, "image/gif"),
        ("a", b"RIFF....WEBPVP8 ", ImagePart, "image/webp"),
        ("a.txt", b"%PDF-1.7", FilePart, "application/pdf"),
        ("a", b"{\\rtf1", FilePart, "application/rtf"),
        ("a.DOCX", b"PK\x03\x04", FilePart, "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
        ("a.ods", b"PK\x03\x04", FilePart, "application/vnd.oasis.opendocument.spreadsheet"),
        ("a.xls", b"\xd0\xcf\x11\xe0", FilePart, "application/vnd.ms-excel"),
        ("a", b"RIFF....WAVEfmt ", AudioPart, "audio/wav"),
        ("a", b"ID3\x04", AudioPart, "audio/mpeg"),
        ("a", b"\xff\xfb\x90", AudioPart, "audio/mpeg"),
        ("a", b"\xff\xf1\x50", AudioPart, "audio/aac"),
        ("a", b"OggS", AudioPart, "audio/ogg"),
        ("a", b"fLaC", AudioPart, "audio/flac"),
        ("a", b"\0\0\0 ftypM4A ", AudioPart, "audio/mp4"),
    ],
)
def test_content_decides_the_kind_and_the_name_that_of_office_documents(name, start, kind, media_type):
    content = start + b"\0\x80 more"
    part = attachment_of(name, content)
    assert (type(part), part.media_type) == (kind, media_type)
    assert b64decode(part.data) == content


@pytest.mark.parametrize("content", [b"", b"be brief", "Grüße".encode(), b"\xef\xbb\xbfa,b"])
def test_text_is_not_an_attachment(content):
    assert attachment_of("a.docx", content) is None


@pytest.mark.parametrize(
    ("name", "content"),
    [("a.zip", b"PK\x03\x04\0"), ("a.mp4", b"\0\0\0 ftypisom"), ("a.pdf", b"\0\x01\x80"), ("a.txt", b"\xff\xfea\0")],
)
def test_unknown_type_is_refused_with_the_known_ones(name, content):
    with pytest.raises(AttachmentRefused, match=name) as caught:
        attachment_of(name, content)
    assert "PDF" in caught.value.hint


@pytest.mark.parametrize(("start", "limit"), [(b"GIF89a", 10 << 20), (b"%PDF-", LARGEST_ATTACHMENT)])
def test_size_is_limited(start, limit):
    assert attachment_of("a", start.ljust(limit, b"\x80")) is not None
    with pytest.raises(AttachmentRefused, match="MiB"):
        attachment_of("a", start.ljust(limit + 1, b"\x80"))


def test_folders_are_not_part_of_the_name_of_a_file():
    assert attachment_of("/home/ada/private/a.pdf", b"%PDF-").name == "a.pdf"


@pytest.mark.parametrize("encoded", [SECRET, SECRET.replace("-", "%2D"), b64encode(SECRET.encode()).decode()])
@pytest.mark.parametrize("form", ["https://x.example/{}", "https://x.example/a?key={}"])
def test_address_with_a_secret_is_refused(redactor, encoded, form):
    with pytest.raises(AttachmentRefused, match="the secret `github`") as caught:
        check_attachment(ImageUrlPart(url=form.format(encoded.rstrip("="))), redactor)
    assert SECRET not in str(caught.value.as_dict())


def test_address_with_a_value_that_looks_like_a_secret_is_refused(redactor):
    redactor.add_pattern(r"AKIA[0-9A-Z]{16}", "aws")
    with pytest.raises(AttachmentRefused, match="looks like a secret"):
        check_attachment(ImageUrlPart(url="https://x.example/AKIA0123456789ABCDEF"), redactor)


@pytest.mark.parametrize(
    "part",
    [
        FilePart(media_type="application/pdf", data=b64encode(b"%PDF- " + SECRET.encode()).decode(), name="a.pdf"),
        AudioPart(media_type="audio/wav", data=b64encode(b"RIFF " + SECRET.encode()).decode()),
        ImagePart(media_type="image/png", data=b64encode(b"xx" + SECRET.encode()).decode()),
        FilePart(media_type="application/pdf", data="", name=f"{SECRET}.pdf"),
    ],
    ids=["file", "audio", "image", "name"],
)
def test_file_with_a_secret_is_refused(redactor, part):
    with pytest.raises(AttachmentRefused, match="the secret `github`") as caught:
        check_attachment(part, redactor)
    assert SECRET not in str(caught.value.as_dict())


def test_invalid_base64_is_refused(redactor):
    with pytest.raises(AttachmentRefused, match="base64"):
        check_attachment(FilePart(media_type="application/pdf", data="a\nb", name="a.pdf"), redactor)


@pytest.mark.parametrize(
    "url",
    [
        "ftp://x.example/a",
        "file:///etc/passwd",
        "data:image/png;base64,aGk=",
        "https://ada:pw@x.example/a",
        "https://x.example\\@y.example/",
        "https://x.example/a b",
        "https://x.example/a\n",
        "https://x.example/ä",
        "https://x.example/" + "a" * 8_000,
        "https://",
    ],
    ids=lambda url: url[:30],
)
def test_invalid_address_of_an_image_is_rejected(url):
    with pytest.raises(ValidationError):
        ImageUrlPart(url=url)


def test_file_beyond_every_provider_limit_is_rejected():
    with pytest.raises(ValidationError):
        FilePart(media_type="application/pdf", data="a" * ((48 << 20) + 1), name="a.pdf")
