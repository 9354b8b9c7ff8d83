"""Readers who come by an address of before *Rotary positions* had a page of its own, or wrote something there."""

import json

import pytest
from conftest import put_together
from playwright.sync_api import expect

OLD, NEW = "book/positions.html", "book/rotary.html"


@pytest.mark.parametrize("name", ["diagonals", "exercise-rope-2d-mixed", "equation-eq-box"])
def test_an_old_address_leads_on(visit, name):
    page = visit("book/references.html")
    page.goto(page.url.replace("book/references.html", f"{OLD}#{name}"))
    page.wait_for_url(f"**/{NEW}#{name}")
    expect(page.locator(f"#{name}")).to_be_in_viewport()
    page.go_back()
    page.wait_for_url("**/references.html")  # and not to the old address, which would lead on again


def test_without_scripts_an_old_address_has_a_link(visit):
    page = visit(f"{OLD}#diagonals", java_script_enabled=False)
    links = page.locator(".moved a")
    assert links.count() > 20
    assert [link.get_attribute("href") for link in links.all() if link.is_visible()] == ["rotary.html#diagonals"]
    expect(page.locator("#diagonals")).to_be_in_viewport()
    page.locator("#diagonals a").click()
    expect(page.get_by_role("heading", name="Diagonals")).to_be_in_viewport()


def test_nobody_else_sees_what_has_moved(visit):
    page = visit(f"{OLD}#positions-read-next")
    assert not any(one.is_visible() for one in page.locator(".moved").all())


def test_what_was_written_and_answered_stands_on_the_new_page(visit):
    page = visit(NEW)
    kept = {
        "exercise/rope_2d_mixed": {"code": "# what I wrote", "solved": True},
        "quiz/quiz-positions-mask": {"answer": "45", "right": True},
    }
    for name, value in kept.items():  # as the old page kept it
        page.evaluate(f"localStorage.setItem('patches-and-positions/{name}', {json.dumps(json.dumps(value))})")
    page.reload()
    put_together(page)
    expect(page.locator("#exercise-rope-2d-mixed textarea")).to_have_value("# what I wrote")
    expect(page.locator("#quiz-positions-mask input")).to_have_value("45")
