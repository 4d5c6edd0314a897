/** `node dist/bench/top-level-fields.js`: finding two fields of a 10 MB body, beside JSON.parse of all of it. */
import { readString, scanTopLevelFields } from '../supervisor/http/json/top-level-fields.js';
import { compareSteps } from './micro.js';

const MB = 10 ** 6;
const control = { id: '5f1c13fe', apiKey: 'secret', callID: 'call_1' };

const INPUTS: Readonly<Record<string, unknown>> = {
  'one string (an image in base64)': 'QUJD'.repeat(2.5 * MB),
  'one string, every tenth character escaped': '"23456789'.repeat(MB),
  'numbers with fractions': Array.from({ length: 520_000 }, (_, i) => i / 7),
  'small objects': Array.from({ length: 130_000 }, (_, i) => ({
    id: i,
    label: `item number ${i}`,
    tags: ['a', 'b'],
    more: null,
    yes: true,
  })),
};

for (const [title, modelInputs] of Object.entries(INPUTS)) {
  const body = Buffer.from(JSON.stringify({ ...control, modelInputs }));
  compareSteps(`${title}: ${(body.length / MB).toFixed(1)} MB`, {
    'JSON.parse of its text': () => JSON.parse(body.toString()) as unknown,
    scanTopLevelFields: () => {
      const json = scanTopLevelFields(body, ['apiKey', 'callID']).fields.get('apiKey');
      return json === undefined ? null : readString(json, 100);
    },
  });
}
