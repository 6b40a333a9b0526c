package dev.fieldmesh.app.screen

import android.view.LayoutInflater
import android.view.View
import android.view.ViewGroup
import android.widget.BaseAdapter
import android.widget.ListView
import android.widget.TextView
import dev.fieldmesh.app.R
import dev.fieldmesh.core.app.AppState
import dev.fieldmesh.core.app.CampaignState
import dev.fieldmesh.core.app.SpeedUnit
import dev.fieldmesh.core.app.Standing
import dev.fieldmesh.core.app.TrialRow

/** What is done, what comes next, what was rejected and why. */
class CampaignScreen(override val view: View, private val unit: () -> SpeedUnit, onTrial: (TrialRow) -> Unit) : Screen {
    private val context = view.context
    private val rows = Rows()

    init {
        view.findViewById<ListView>(R.id.trials).apply {
            adapter = rows
            setOnItemClickListener { _, _, place, _ -> onTrial(rows.getItem(place)) }
        }
    }

    override fun show(state: AppState) {
        val c = state.campaign
        text(R.id.done).text =
            c?.let(::doneText) ?: context.getString(R.string.campaign_none)
        text(R.id.left).text = c?.let(::leftText) ?: context.nextStep(state.drive.link)
        val next = c?.next
        text(R.id.next).apply {
            visibility = if (next == null) View.GONE else View.VISIBLE
            if (next != null) text = nextText(next)
        }
        rows.show(c?.rows.orEmpty())
    }

    private fun text(id: Int): TextView = view.findViewById(id)

    private fun doneText(c: CampaignState): String {
        if (c.provisional == 0) return context.getString(R.string.campaign_done, c.accepted, c.rows.size)
        return context.getString(R.string.campaign_done_alone, c.accepted, c.rows.size, c.provisional)
    }

    private fun leftText(c: CampaignState): String = when {
        c.isStopped -> context.getString(R.string.campaign_stopped)
        c.isOver -> context.getString(R.string.campaign_over)
        else -> context.getString(R.string.campaign_left, duration(c.leftS), "%.1f".format(c.leftM / 1000))
    }

    private fun nextText(row: TrialRow): String {
        val title = if (row.standing == Standing.PRESENT) R.string.campaign_present else R.string.campaign_next
        return context.getString(title, row.number) + "\n" + Speeds(context, unit()).factors(row).unbroken()
    }

    private inner class Rows : BaseAdapter() {
        private var list: List<TrialRow> = emptyList()

        fun show(newest: List<TrialRow>) {
            if (newest == list) return
            list = newest
            notifyDataSetChanged()
        }

        override fun getCount() = list.size

        override fun getItem(position: Int) = list[position]

        override fun getItemId(position: Int) = list[position].number.toLong()

        override fun hasStableIds() = true

        override fun getView(position: Int, old: View?, parent: ViewGroup): View {
            val row = old ?: LayoutInflater.from(context).inflate(R.layout.campaign_row, parent, false)
            val trial = list[position]
            row.findViewById<TextView>(R.id.name).text =
                "${trial.number}  ${Speeds(context, unit()).factors(trial).unbroken()}"
            row.findViewById<TextView>(R.id.standing).apply {
                setText(standing(trial.standing).text)
                setTextColor(context.getColor(standing(trial.standing).color))
            }
            row.findViewById<TextView>(R.id.reason).apply {
                text = reason(trial)
                visibility = if (text.isEmpty()) View.GONE else View.VISIBLE
            }
            return row
        }

        private fun reason(trial: TrialRow): String {
            val attempts = if (trial.attempts >
                1
            ) {
                context.resources.getQuantityString(R.plurals.attempts, trial.attempts, trial.attempts)
            } else {
                null
            }
            val newest = trial.newest
            val result = newest?.let(Speeds(context, unit())::reason)
                ?: newest?.throughputBps?.let(context::bitRate)
            val alone = context.getString(R.string.standing_alone)
                .takeIf { trial.standing == Standing.ACCEPTED && newest?.isFinal == false }
            return listOfNotNull(attempts, result ?: alone).joinToString(": ").unbroken()
        }
    }

    private fun standing(s: Standing): Word = when (s) {
        Standing.OPEN -> Word(R.string.standing_open, R.color.text_soft)
        Standing.NEXT -> Word(R.string.standing_next, R.color.accent)
        Standing.PRESENT -> Word(R.string.standing_present, R.color.accent)
        Standing.ACCEPTED -> Word(R.string.standing_accepted, R.color.good)
        Standing.REJECTED -> Word(R.string.standing_rejected, R.color.warn)
        Standing.FAILED -> Word(R.string.standing_failed, R.color.bad)
        Standing.INTERRUPTED -> Word(R.string.standing_interrupted, R.color.warn)
    }
}
