/** Events, and the steps that wait for them. */

import type { Kernel } from '../runtime/kernel.js';
import { Events } from './events.js';
import type { EventLoads } from './loads.js';
import { eventOperations } from './operations.js';

export function openEvents(kernel: Kernel<EventLoads>) {
  const events = new Events({ ...kernel, maxOutputBytes: kernel.settings.maxOutputBytes });
  return { parts: [events], operations: eventOperations(events) };
}
