/** The data of a tensor from a list: flat, or nested as its shape is. */
import {
  countText,
  elementCount,
  kindOf,
  MAX_DIMENSIONS,
  newData,
  shown,
  Tensor,
  typedArrayName,
  type Datatype,
  type TensorData,
} from '../../../protocol/values/tensor.js';
import { fill, type Filling, type Refuse } from './elements.js';

/**
 * Makes a tensor of a checked shape; every element must be one of the datatype. @throws the error of `refuse`. Nothing
 * is allocated for a shape that the list does not have.
 */
export function tensorOfList(
  datatype: Datatype,
  shape: readonly number[],
  list: unknown,
  refuse: Refuse,
): Tensor {
  if (!Array.isArray(list)) throw refuse(`data must be a list, not ${kindOf(list)}`);
  const count = elementCount(shape);
  const isNested = shape.length > 1 && isRow(list[0]);
  if (isNested) checkRows(list, shape, 0, refuse);
  else if (list.length !== count) throw refuse(`${countText(shape)}, but data has ${list.length}`);
  const data = newData(datatype, count) as Filling;
  if (isNested) fillRows(datatype, data, { at: 0 }, list, shape.length - 1, refuse);
  else fill(datatype, data, 0, list, refuse);
  return new Tensor(datatype, shape, data as unknown as TensorData[Datatype]);
}

/** The sizes of nested lists, by the first item of each; the others are checked when the tensor is made. Also that item. */
export function shapeOfLists(value: unknown, refuse: Refuse): [shape: number[], innermost: unknown] {
  const shape: number[] = [];
  let item = value;
  for (; Array.isArray(item); item = (item as Row)[0]) {
    if (shape.length === MAX_DIMENSIONS) throw refuse(`it is nested deeper than ${MAX_DIMENSIONS} lists`);
    shape.push(item.length);
  }
  return [shape, item];
}

type Row = readonly unknown[];

/** A list, or a typed array as an app's innermost row. */
function isRow(value: unknown): value is Row {
  return Array.isArray(value) || typedArrayName(value) !== undefined;
}

/** Checks the lengths of all lists, down to the innermost. */
function checkRows(list: Row, shape: readonly number[], level: number, refuse: Refuse): void {
  const size = shape[level] as number;
  if (list.length !== size) {
    const where = level === 0 ? 'data' : `a list in dimension ${level} of data`;
    throw refuse(`${where} has ${list.length} items; the shape ${shown(shape)} wants ${size}`);
  }
  if (level === shape.length - 1) return;
  for (const item of list) {
    if (!isRow(item))
      throw refuse(`data is not nested like the shape ${shown(shape)}: it has ${kindOf(item)} beside lists`);
    checkRows(item, shape, level + 1, refuse);
  }
}

function fillRows(
  datatype: Datatype,
  data: Filling,
  place: { at: number },
  list: Row,
  levels: number,
  refuse: Refuse,
): void {
  if (levels > 0) {
    for (const item of list) fillRows(datatype, data, place, item as Row, levels - 1, refuse);
    return;
  }
  fill(datatype, data, place.at, list, refuse);
  place.at += list.length;
}
