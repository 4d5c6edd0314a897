/** An app of a chosen version, and a GPU, for tests of models whose workers are replaced. */
import type { Gpu } from '../../../supervisor/machine/nvidia-smi.js';
import { CUES_MODULE } from '../../helpers/edited-app.js';

export const CARDS: Gpu[] = [{ index: 0, uuid: 'GPU-0', name: 'A100', card: 'GPU-0' }];

/** Its init notes that it begins, and waits if the test has given the cue `hold`; a call waits for the cue that it names. */
export function versionApp(version: number): string {
  return `
    import { given, isGiven, note } from ${JSON.stringify(CUES_MODULE)};
    export async function init() {
      note('init ${version}');
      if (isGiven('hold ${version}')) await given('go on ${version}');
    }
    export async function inference({ until }) {
      if (until !== undefined) { note('begun'); note('begun ' + process.pid); await given(until); }
      return { version: ${version}, pid: process.pid };
    }`;
}
