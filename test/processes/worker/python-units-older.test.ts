/** The unit tests of the Python worker with Python 3.8 to 3.10. */
import { needs } from '../../helpers/needs.js';
import { isOlder, presentPythons } from '../../helpers/pythons.js';
import { testUnits } from './python-units.js';

if (needs('python3') === false) testUnits(presentPythons().filter(isOlder));
