/** The signature of an app: the names, datatypes and shapes of its inputs and outputs. */
import type { Datatype } from './tensor.js';

export interface TensorSpec {
  readonly name: string;
  readonly datatype: Datatype;
  /** The size of each dimension; −1 for one that may have any size. Left out: nobody knows how many dimensions there are. */
  readonly shape?: readonly number[];
}

export interface Signature {
  readonly inputs: readonly TensorSpec[];
  readonly outputs: readonly TensorSpec[];
}
