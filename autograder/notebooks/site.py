"""Where the course is on the web: `_config.yml` names its repository, and every address follows from that."""

import functools
from pathlib import Path

import yaml


def configuration(root):
    """What stands in the `_config.yml` of a course, as a dictionary."""
    return yaml.safe_load(Path(root, "_config.yml").read_text(encoding="utf-8"))


@functools.cache
def settings(root):
    """What the `_config.yml` of a course tells Sphinx, with its title, and the site's address as
    `html_baseurl`.

    Parameters
    ----------
    root : path
        The course's folder.

    Returns
    -------
    dict
    """
    config = configuration(root)
    site = config["sphinx"]["config"] | {"title": config["title"]}
    return site | {"html_baseurl": site.get("html_baseurl") or address(site["repository"])}


def address(repository):
    """Where GitHub Pages serves a repository, `owner/name`."""
    owner, name = repository.split("/")
    return f"https://{owner}.github.io/{name}/"


def colab(site, notebook):
    """The address that opens a notebook of the repository in Colab.

    Parameters
    ----------
    site : mapping
        With `repository` and `repository_branch`: the settings, or Sphinx's own.
    notebook : str
        Its path in the repository.

    Returns
    -------
    str
    """
    return f"https://colab.research.google.com/github/{site['repository']}/blob/{site['repository_branch']}/{notebook}"
