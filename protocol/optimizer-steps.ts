/** The steps that `banana-serve optimize` has processes of the worker's side do, and their answers, sent as Node's IPC. */

/** Inputs by which a model is tried: the example beside it, varied numbers, or zeros. */
export const INPUT_KINDS = ['example', 'varied', 'zeros'] as const;
export type InputKind = (typeof INPUT_KINDS)[number];

export interface SaveStep {
  readonly step: 'save';
  readonly model: string;
  /** The file to write. */
  readonly graph: string;
  /** Name of the file of weights to write beside it. */
  readonly weights: string;
}

export interface RunStep {
  readonly step: 'run';
  readonly model: string;
  /** The optimized graph; null to run the model as it is. */
  readonly graph: string | null;
  /** Null: the first kind with which the model runs. */
  readonly inputs: InputKind | null;
}

export type OptimizerStep = SaveStep | RunStep;

export interface RunFacts {
  readonly inputs: InputKind;
  /** Digest of all outputs, byte by byte. */
  readonly digest: string;
  /** CPU time to load it. */
  readonly loadMs: number;
  /** Memory of the process that it shares with no other, once it has run; null where the system does not tell. */
  readonly privateBytes: number | null;
}

/** `facts`: null for a step that saves. */
export type OptimizerAnswer = { readonly facts: RunFacts | null } | { readonly problem: string };
