"""Records: named values that are made without compiling anything."""

import copy
import inspect
import pickle

import pytest

from maxcosine import RULES, Param
from maxcosine.record import Record


class Point(Record):
    """Where something is."""

    x: float
    y: float = 0.0

    def __post_init__(self):
        self.length = abs(self.x) + abs(self.y)


class Fixed(Record, frozen=True):
    name: str
    points: tuple[Point, ...] = ()


def test_values_are_given_by_position_or_name_and_else_the_defaults():
    assert Point(1.0).as_dict() == {"x": 1.0, "y": 0.0}
    assert Point(1.0, 2.0).as_dict() == Point(y=2.0, x=1.0).as_dict() == {"x": 1.0, "y": 2.0}
    assert Point(1.0, -2.0).length == 3.0
    assert repr(Point(1.0, y=2.0)) == "Point(x=1.0, y=2.0)"


@pytest.mark.parametrize(
    ("values", "named"), [((), {}), ((1, 2, 3), {}), ((1,), {"x": 2}), ((1,), {"z": 2}), ((), {"y": 2})]
)
def test_what_does_not_fit_is_refused(values, named):
    with pytest.raises(TypeError, match=r"^Point is made with \(x: float, y: float = 0.0\), each once$"):
        Point(*values, **named)


def test_a_changed_copy_is_made_anew():
    point = Point(1.0, 2.0)
    moved = point.replace(x=5.0)
    assert (moved.x, moved.y, moved.length) == (5.0, 2.0, 7.0)
    assert (point.x, point.length) == (1.0, 3.0)


def test_records_are_changed_unless_they_are_frozen():
    point, fixed = Point(1.0), Fixed("a")
    point.x = 4.0
    assert point.x == 4.0
    with pytest.raises(
        AttributeError, match=r"name of a Fixed stays as it was made; replace\(\) gives another"
    ):
        fixed.name = "b"
    with pytest.raises(AttributeError, match="stays as it was made"):
        del fixed.name
    assert fixed.replace(name="b").name == "b"


def test_a_record_is_equal_to_itself_only_and_can_be_a_key():
    one, other = Point(1.0), Point(1.0)
    assert one == one
    assert one != other
    assert len({one, other, one}) == 2


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda it: pickle.loads(pickle.dumps(it))])
def test_records_are_copied_and_pickled(again):
    fixed = again(Fixed("a", (Point(1.0, 2.0),)))
    assert (type(fixed), fixed.name, repr(fixed.points)) == (Fixed, "a", "(Point(x=1.0, y=2.0),)")
    assert fixed.points[0].length == 3.0
    with pytest.raises(AttributeError, match="stays as it was made"):
        fixed.name = "b"


def test_it_is_told_what_a_record_is_made_with():
    signature = inspect.signature(Point)
    assert list(signature.parameters) == ["x", "y"]
    assert signature.parameters["y"].default == 0.0


def test_a_record_that_is_called_has_the_signature_of_its_call():
    assert next(iter(inspect.signature(RULES["mcp"]).parameters)) == "margin"


def test_a_record_of_a_record_has_the_values_of_both():
    class Higher(Point):
        z: float = 1.0

    class Same(Point):
        pass

    assert repr(Higher(1.0, z=3.0)) == "Higher(x=1.0, y=0.0, z=3.0)"
    assert str(inspect.signature(Higher)) == "(x: float, y: float = 0.0, z: float = 1.0)"
    assert repr(Same(1.0)) == "Same(x=1.0, y=0.0)"


def test_parameters_are_equal_by_their_values():
    assert Param(1.0, "a") == Param(1.0, "a") != Param(2.0, "a")
    assert len({Param(1.0), Param(1.0), Param(2.0)}) == 2
