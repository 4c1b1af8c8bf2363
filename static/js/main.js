// Everything that pages share, in one bundle.
import "./theme.js";
import "./times.js";
import "./toast.js";
import "./layers.js";
import "./palette.js";
import "./keys.js";
import "./feed.js";
import "./check.js";
import "./elapsed.js";
import "./jobs.js";

if (document.querySelector(".log[data-url]")) import("./log/viewer.js");
if (document.querySelector(".metrics[data-url]")) import("./metrics/page.js");
