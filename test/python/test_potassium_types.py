"""Requests and responses of Potassium apps."""

import unittest

from potassium.types import Request, RequestHeaders, Response


class RequestTest(unittest.TestCase):
    def test_headers_are_found_in_any_case_and_with_dashes_or_underscores(self) -> None:
        headers = RequestHeaders({"x-custom-name": "a"})
        for name in ("X-Custom-Name", "x_custom_name", "X_CUSTOM-name"):
            self.assertEqual(headers[name], "a")
            self.assertIn(name, headers)
        self.assertEqual(headers.get("absent", "b"), "b")
        self.assertIsNone(headers.get("absent"))
        for name in ("absent", 5):
            with self.assertRaises(KeyError):
                headers[name]  # type: ignore[index]
        self.assertEqual(dict(headers), {"x-custom-name": "a"})

    def test_a_header_written_with_underscores_does_not_stand_for_one_with_dashes(self) -> None:
        for sent in ({"x-user": "a", "x_user": "b"}, {"x_user": "b", "x-user": "a"}):
            self.assertEqual([RequestHeaders(sent)[name] for name in ("X-User", "x_user")], ["a", "a"])
        self.assertEqual(RequestHeaders({"x_a-b": "1", "x-a_b": "2"})["X-A-B"], "1")

    def test_headers_are_not_shown_with_their_values(self) -> None:
        self.assertNotIn("secret", repr(RequestHeaders({"x-banana-api-key": "secret"})))

    def test_a_test_may_make_a_request_of_its_own(self) -> None:
        request = Request(id="mine", headers={"A": "b"}, json={"prompt": "c"})
        self.assertEqual((request.id, request.headers["a"], request.json), ("mine", "b", {"prompt": "c"}))
        self.assertEqual(repr(request), "Request(id='mine', json={'prompt': 'c'})")
        with self.assertRaisesRegex(AttributeError, "only id, headers and json"):
            request.body


class ResponseTest(unittest.TestCase):
    def test_json_has_its_content_type_and_can_be_read_and_replaced(self) -> None:
        response = Response(status=201, json={"a": 1}, headers={"content-type": "text/plain", "X-A": "b"})
        self.assertEqual((response.status, response.json), (201, {"a": 1}))
        self.assertEqual(response.headers, {"Content-Type": "application/json", "X-A": "b"})
        self.assertEqual(response.body, b'{"a": 1}')
        response.json = [2]
        self.assertEqual((response.json, response.body), ([2], b"[2]"))

    def test_a_body_has_no_default_content_type_and_json_replaces_it(self) -> None:
        response = Response(body=b"Hello")
        self.assertEqual((response.body, response.headers, response.json), (b"Hello", {}, None))
        response.json = {"a": 1}
        self.assertEqual((response.json, response.headers), ({"a": 1}, {"Content-Type": "application/json"}))
        response.body = b"2"
        self.assertEqual((response.body, response.json), (b"2", 2))

    def test_json_none_is_absent_in_the_constructor_and_null_when_assigned(self) -> None:
        self.assertEqual((Response(json=None).is_json, Response().body), (False, None))
        response = Response()
        response.json = None
        self.assertEqual((response.is_json, response.body), (True, b"null"))

    def test_an_invalid_response_is_refused_when_it_is_made(self) -> None:
        with self.assertRaisesRegex(AssertionError, "cannot have both json and body set"):
            Response(json={}, body=b"")
        for status in (99, 600, "200", True, 200.0):
            with self.assertRaisesRegex(ValueError, "is not a whole number from 200 to 599"):
                Response(status=status)  # type: ignore[arg-type]

    def test_the_headers_given_stay_the_callers_own(self) -> None:
        given = {"A": "b"}
        Response(json={}, headers=given)
        self.assertEqual(given, {"A": "b"})


if __name__ == "__main__":
    unittest.main()
