/** Why an archive is not unpacked. The message is a sentence that follows the archive's name. */
export class ArchiveProblem extends Error {}

/** Nobody wants it any more. */
export class GivenUp extends Error {}
