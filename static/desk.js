// What the pages do beyond links and forms. Every page works without this; each module
// takes care of one thing.
import { forms } from "./forms.js";
import { keys } from "./keys.js";
import { live } from "./live.js";
import { times } from "./times.js";

forms(document);
keys(document);
times(document);
live(document);
