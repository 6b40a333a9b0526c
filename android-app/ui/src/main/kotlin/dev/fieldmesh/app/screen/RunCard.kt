package dev.fieldmesh.app.screen

import android.text.format.Formatter
import android.view.View
import android.widget.TextView
import dev.fieldmesh.app.R
import dev.fieldmesh.core.experiment.ExperimentState
import dev.fieldmesh.core.experiment.Steer
import dev.fieldmesh.core.wire.Run
import dev.fieldmesh.core.wire.RunFile

/** How one run stands, what can be done with it, what it measured, and what can be shared of it. */
internal class RunCard(private val view: View, private val actions: ExperimentActions) {
    private val context = view.context
    private val results = Cards<Pair<String, String>>(view.findViewById(R.id.results), R.layout.node_row)
    private val places = PlacesCard(view)
    private val files = Cards<Pair<String, () -> Unit>>(view.findViewById(R.id.files), R.layout.experiment_file)
    private val run get() = actions.experiment.opened

    init {
        for ((id, how) in listOf(R.id.pause to Steer.PAUSE, R.id.resume to Steer.RESUME, R.id.end to Steer.END)) {
            view.findViewById<TextView>(id).apply { setOnClickListener { run?.let { actions.steer(it, how, this) } } }
        }
        view.findViewById<View>(R.id.wish_back).setOnClickListener { run?.let(actions::takeBack) }
        view.findViewById<View>(R.id.to_list_too).setOnClickListener { actions.open(null) }
    }

    fun show(now: ExperimentState) {
        val run = now.run
        view.tell(R.id.run_name, now.opened)
        val gone = context.getString(R.string.exp_gone).takeIf { now.runs != null }
        view.tell(R.id.run_phase, run?.let(::phaseText) ?: gone)
        view.tell(R.id.run_said, run?.said)
        val wish = now.opened?.let(now::wish)
        view.tell(R.id.run_wish, wish?.let { context.getString(ASKED.getValue(it)) })
        view.tell(R.id.wish_back, wish?.let { context.getString(TAKE_BACK.getValue(it)) })
        showSteering(run?.takeIf { it.place != REHEARSAL }, wish)
        showResults(run)
        places.show(now.places, Speeds(context, actions.unit))
        showFiles(now)
    }

    private fun showSteering(run: Run?, wish: Steer?) {
        val isRunning = run?.phase == "running"
        val isResumable = run?.phase in RESUMABLE
        // Nodes that could not be put back, or may go on, are put back by a pause whatever the run's phase is.
        val mayGoOn = run?.phase == "failed" || run?.said != null || wish == Steer.RESUME
        val isHalting = wish == Steer.PAUSE || wish == Steer.END
        view.findViewById<TextView>(R.id.pause).setText(if (isRunning) R.string.exp_pause else R.string.exp_put_back)
        view.see(R.id.pause, (isRunning || mayGoOn) && !isHalting)
        view.see(R.id.resume, isResumable && wish != Steer.RESUME && wish != Steer.END)
        view.see(R.id.end, isRunning || isResumable)
    }

    private fun phaseText(run: Run): String {
        val place = PLACES[run.place]?.let(context::getString) ?: run.place
        return context.getString(R.string.exp_of, run.campaign, place) + "\n" + context.standing(run)
    }

    private fun showResults(run: Run?) {
        val words = Speeds(context, actions.unit)
        val lines = run?.sheet?.speeds.orEmpty().map {
            val n = context.resources.getQuantityString(R.plurals.exp_attempts, it.n, it.n)
            val result = context.bitRate(it.meanBps)
            "${words.fine(it.speedMps)} ${words.symbol}" to "$result, $n"
        }
        view.see(R.id.results_title, lines.isNotEmpty())
        results.fill(lines) { row, (speed, result) ->
            row.findViewById<TextView>(R.id.label).text = speed
            row.findViewById<TextView>(R.id.value).text = result
        }
    }

    private fun showFiles(now: ExperimentState) {
        val report = now.files.find { it.name == REPORT }
        val open = report?.let { context.getString(R.string.exp_open) to { actions.fetch(it.name, true) } }
        val share = now.files.map { shareText(it) to { actions.fetch(it.name, false) } }
        val all = listOfNotNull(open) + share
        files.fill(all) { button, (words, act) ->
            (button as TextView).text = words
            button.setOnClickListener { act() }
        }
        view.tell(R.id.fetching, now.fetching?.let { context.getString(R.string.exp_fetching, it) })
    }

    private fun shareText(file: RunFile) =
        context.getString(R.string.exp_share, file.name, Formatter.formatShortFileSize(context, file.bytes))

    private companion object {
        const val REHEARSAL = "rehearsal" // it runs on the controller itself
        const val REPORT = "report.html"
        val RESUMABLE = setOf("paused", "failed")
        val ASKED = mapOf(
            Steer.START to R.string.exp_asked_start,
            Steer.PAUSE to R.string.exp_asked_pause,
            Steer.RESUME to R.string.exp_asked_resume,
            Steer.END to R.string.exp_asked_end,
        )
        val TAKE_BACK = mapOf(
            Steer.START to R.string.exp_take_back,
            Steer.PAUSE to R.string.exp_not_pause,
            Steer.RESUME to R.string.exp_not_resume,
            Steer.END to R.string.exp_not_end,
        )
        val PLACES = mapOf(
            "road" to R.string.exp_road_place,
            "bench" to R.string.exp_bench_place,
            REHEARSAL to R.string.exp_rehearsal_place,
        )
    }
}
