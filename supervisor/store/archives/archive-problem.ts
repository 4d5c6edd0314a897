/** An archive cannot be unpacked. The message is a sentence that follows the archive's name. */
export class ArchiveProblem extends Error {}

/** Unpacking was cancelled. */
export class UnpackingCancelled extends Error {}
