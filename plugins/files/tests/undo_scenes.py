"""Changes of files, and what an attacker puts in the place of their folder afterwards."""


def replace_by_link(folder, target):
    folder.rename(folder.with_name("moved away"))
    folder.symlink_to(target)


def replace_by_folder(folder, other):
    folder.rename(folder.with_name("moved away"))
    other.rename(folder)


async def overwrite(files, folder, effects):
    (folder / "x").write_text("chosen by the attacker")
    await files.write(folder / "x", content="known", overwrite=True, on_effect=effects)


async def create(files, folder, effects):
    await files.write(folder / "x", content="known", on_effect=effects)


async def delete(files, folder, effects):
    (folder / "x").write_text("chosen by the attacker")
    await files.delete(folder / "x", on_effect=effects)


async def copy(files, folder, effects):
    (folder / "x").write_text("chosen by the attacker")
    (folder.parent / "source").write_text("known")
    await files.copy(folder.parent / "source", target=f"{folder}/x", overwrite=True, on_effect=effects)


async def move_out(files, folder, effects):
    (folder / "x").write_text("chosen by the attacker")
    await files.move(folder / "x", target=f"{folder.parent}/moved", on_effect=effects)


async def move_in(files, folder, effects):
    (folder.parent / "source").write_text("known")
    await files.move(folder.parent / "source", target=f"{folder}/x", on_effect=effects)


async def make_folder(files, folder, effects):
    await files.make_folder(folder / "x", on_effect=effects)


async def delete_folder(files, folder, effects):
    (folder / "x").mkdir()
    await files.delete(f"{folder}/x/", on_effect=effects)


# the change of an attacker, and what the folder of the victim contains already
CHANGES = {
    "overwrite": (overwrite, "known"),
    "create": (create, "known"),
    "delete": (delete, None),
    "copy": (copy, "known"),
    "move out of the folder": (move_out, None),
    "move into the folder": (move_in, "known"),
    "make a folder": (make_folder, "folder"),
    "delete a folder": (delete_folder, None),
}
REPLACEMENTS = {"link": replace_by_link, "folder": replace_by_folder}


def fill(folder, content):
    if content == "folder":
        (folder / "x").mkdir()
    elif content is not None:
        (folder / "x").write_text(content)


def contents(folder):
    return {path.name: path.read_text() if path.is_file() else None for path in folder.iterdir()}
