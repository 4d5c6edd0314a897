/** Why a model was not optimized, for the person who asked for it. Nothing has been written then. */
export class OptimizeProblem extends Error {}
