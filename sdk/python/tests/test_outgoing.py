import os
import pathlib

import aod
from fakeapi import APITest, accept, succeeded


class Files(APITest):
    def setUp(self):
        super().setUp()
        self.serve(accept(lambda n, _: succeeded(n)))

    def hand(self, *args, **more):
        aod.handoff("csv", *args, **more)
        return [request.document["args"] for request in self.api.requests if request.command == "POST"][-1]

    def test_a_mapping_copies_and_names(self):
        path = self.file("a.csv", "rows")
        args = {"options": {"x": 1}}
        self.assertEqual(
            {"source": "a.csv", "options": {"x": 1, "extra": ["a.csv", "b.csv"]}},
            self.hand(args, files={"source": path, "options.extra": [pathlib.Path(path), self.file("b.csv", "more")]}),
        )
        self.assertEqual({"options": {"x": 1}}, args, "the caller's own arguments are left alone")
        self.assertEqual(["a.csv", "b.csv"], sorted(os.listdir(self.outgoing)))

    def test_a_list_copies_what_the_arguments_name(self):
        path = self.file("in/a.csv")
        args = {"one": path, "two": "a.csv", "rest": [{"three": path}], "n": 1}
        self.assertEqual(
            {"one": "a.csv", "two": "a.csv", "rest": [{"three": "a.csv"}], "n": 1}, self.hand(args, files=[path]),
        )

    def test_a_name_that_is_taken_gets_a_number(self):
        self.assertEqual("a.csv", self.hand(files={"f": self.file("one/a.csv", "1")})["f"])
        self.assertEqual("a-2.csv", self.hand(files={"f": self.file("two/a.csv", "2")})["f"])
        self.assertEqual("a-3.csv", self.hand({"f": "a.csv"}, files=[self.file("three/a.csv", "3")])["f"])
        with open(self.outgoing + "/a-3.csv") as file:
            self.assertEqual("3", file.read())

    def test_the_same_content_is_copied_once(self):
        path = self.file("a.csv", "same")
        for _ in range(3):
            self.assertEqual("a.csv", self.hand(files={"f": path})["f"])
        self.assertEqual(["a.csv"], os.listdir(self.outgoing))

    def test_what_is_there_already_stays_where_it_is(self):
        path = self.file("io/handoff/outgoing/sub/a.csv")
        self.assertEqual({"f": "sub/a.csv", "g": "sub/a.csv"}, self.hand({"g": path}, files=[path], f=path))
        self.assertEqual(["sub"], os.listdir(self.outgoing))

    def test_files_that_are_none_stop_the_call(self):
        for files, error in (
            (["/nowhere/a.csv"], FileNotFoundError), ({"f": self.outgoing + "/none"}, FileNotFoundError),
            ([self.directory], OSError), ("a.csv", TypeError), ({"x.y": self.file("a.csv")}, ValueError),
        ):
            with self.subTest(files=files), self.assertRaises(error):
                self.hand({"x": 1}, files=files)
        self.assertEqual([], self.api.requests)
        self.assertEqual([], [name for name in os.listdir(self.outgoing) if name.endswith(".part")])
