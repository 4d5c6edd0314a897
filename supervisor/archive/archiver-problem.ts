/** The archive cannot be written; the message has the reason and a remedy. */
export class ArchiverProblem extends Error {}
