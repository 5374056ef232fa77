/** Statistics of instances. */

import type { Kernel } from '../runtime/kernel.js';
import { Activity } from './activity.js';
import type { ActivityLoads } from './loads.js';

export const openActivity = (kernel: Kernel<ActivityLoads>) => new Activity(kernel);
