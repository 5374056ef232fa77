/** The limits of a tenant, as the root key sets them and its requests meet them. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { useApi } from '../../helpers/api.js';

const api = useApi();
