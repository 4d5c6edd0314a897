/** The tests of the Python worker over bare frames with Python 3.11 and newer, as far as it is here beside `python3`. */
import { needs } from '../../helpers/needs.js';
import { isOlder, otherPythons } from '../../helpers/pythons.js';
import { testOverFrames } from './python-versions.js';

if (needs('python3') === false) testOverFrames(otherPythons().filter((python) => !isOlder(python)));
