/** The unit tests of the Python worker with Python 3.11 and newer. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { needs } from '../../helpers/needs.js';
import { PYTHON_VERSIONS, isOlder, presentPythons } from '../../helpers/pythons.js';
import { testUnits } from './python-units.js';

const SKIP = needs('python3');
const PYTHONS = SKIP === false ? presentPythons() : [];

testUnits(PYTHONS.filter((python) => !isOlder(python)));

test('the versions that the worker runs on are tried as far as they are here', { skip: SKIP }, (t) => {
  const absent = PYTHON_VERSIONS.filter((version) => !PYTHONS.some((python) => python.version === version));
  if (absent.length > 0) t.diagnostic(`not here, and not tried: Python ${absent.join(', ')}`);
  assert.notEqual(PYTHONS.length, 0);
});
