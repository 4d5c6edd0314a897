"""The functions of `ts.utils.util` for handlers of TorchServe."""

import unittest
from types import ModuleType

from ts.utils.util import list_classes_from_module, load_label_mapping, map_class_to_label


class UtilTest(unittest.TestCase):
    def test_the_classes_of_a_module_are_those_that_it_defines(self) -> None:
        module = ModuleType("of_test")
        exec("from unittest import TestCase\nclass B(TestCase): pass\nclass A: pass\n", module.__dict__)
        self.assertEqual([one.__name__ for one in list_classes_from_module(module)], ["A", "B"])
        self.assertEqual([one.__name__ for one in list_classes_from_module(module, unittest.TestCase)], ["B"])

    def test_probabilities_are_keyed_by_the_names_of_their_classes(self) -> None:
        rows, classes = [[0.75, 0.25], [0.5, 0.5]], [[1, 0], [2, 1]]
        names = {"0": "cat", "1": "dog", "2": "cow"}
        self.assertEqual(
            map_class_to_label(rows, names, classes), [{"dog": 0.75, "cat": 0.25}, {"cow": 0.5, "dog": 0.5}]
        )
        self.assertEqual(map_class_to_label(rows, None, classes)[0], {"1": 0.75, "0": 0.25})
        self.assertEqual(map_class_to_label(rows, names)[1], {"cat": 0.5, "dog": 0.5})

    def test_classes_without_a_file_of_names_have_none_and_a_warning_is_logged(self) -> None:
        with self.assertLogs("ts.utils.util", "WARNING") as logs:
            self.assertIsNone(load_label_mapping("/nowhere/index_to_name.json"))
        self.assertIn("/nowhere/index_to_name.json does not exist", logs.output[0])


if __name__ == "__main__":
    unittest.main()
