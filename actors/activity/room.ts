/** Statistics of what instances do. */

import type { Kernel } from '../runtime/kernel.js';
import { Activity } from './activity.js';

export const openActivity = (kernel: Kernel) => new Activity(kernel);
