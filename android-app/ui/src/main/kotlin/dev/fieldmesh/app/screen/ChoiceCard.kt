package dev.fieldmesh.app.screen

import android.view.LayoutInflater
import android.view.View
import android.widget.CheckBox
import android.widget.EditText
import android.widget.RadioButton
import android.widget.RadioGroup
import android.widget.TextView
import dev.fieldmesh.app.R
import dev.fieldmesh.core.experiment.ExperimentState
import dev.fieldmesh.core.experiment.Hindrance
import dev.fieldmesh.core.wire.Need
import dev.fieldmesh.core.wire.Planned
import dev.fieldmesh.core.wire.Preflight
import dev.fieldmesh.core.wire.Scale

/** One campaign as a person wants it driven, what that takes, and what stands in the way. */
internal class ChoiceCard(private val view: View, private val actions: ExperimentActions) {
    private val context = view.context
    private val speeds =
        Cards<Triple<Double, Boolean, String>>(view.findViewById(R.id.speeds), R.layout.experiment_speed)
    private val needs = Cards<Need>(view.findViewById(R.id.needs), R.layout.node_problem)
    private val typed: EditText = view.findViewById(R.id.speed_text)
    private var scales: List<Scale>? = null
    private var hadAnswer: Boolean? = null

    init {
        view.findViewById<View>(R.id.speed_add).setOnClickListener { add() }
        view.findViewById<View>(R.id.fewer).setOnClickListener { step(-1) }
        view.findViewById<View>(R.id.more).setOnClickListener { step(1) }
        view.findViewById<View>(R.id.check).setOnClickListener { actions.check() }
        view.findViewById<View>(R.id.start).setOnClickListener { actions.start() }
        view.findViewById<View>(R.id.take_back).setOnClickListener {
            actions.experiment.starting?.let { actions.takeBack(it.run) }
        }
        view.findViewById<View>(R.id.to_list).setOnClickListener { actions.choose(null) }
    }

    private fun add() {
        val speed = typed.text.toString().replace(',', '.').toDoubleOrNull()?.takeIf { it > 0 && it.isFinite() }
        if (speed == null) {
            typed.error = context.getString(R.string.exp_speed_bad)
            return
        }
        val mps = actions.unit.inMps(speed)
        val words = Speeds(context, actions.unit)
        // Shown alike, it is the same to a person, who would drive it twice.
        val offered = actions.experiment.speeds.keys.find { words.fine(it) == words.fine(mps) }
        actions.speed(offered ?: mps, true)
        typed.text.clear()
    }

    private fun step(by: Int) {
        actions.experiment.repetitions?.let { actions.repetitions(it + by) }
    }

    fun show(now: ExperimentState) {
        val campaign = now.campaign
        view.tell(R.id.title, campaign?.title ?: now.choice?.campaign)
        view.tell(R.id.question, campaign?.question?.trim()?.ifEmpty { null })
        view.tell(R.id.trouble, campaign?.let(context::trouble))
        showScales(campaign?.scales.orEmpty(), now.choice?.scale)
        showSpeeds(now)
        val repetitions = now.repetitions
        view.findViewById<TextView>(R.id.repetitions).text =
            repetitions?.toString() ?: context.getString(R.string.unknown)
        for (id in listOf(R.id.repetitions_label, R.id.repetitions_row)) view.see(id, repetitions != null)
        view.allow(R.id.fewer, repetitions != null && repetitions > 1)
        view.allow(R.id.more, repetitions != null)
        showPlan(now)
        showNeeds(now)
        showStart(now)
        showAnswer(now.preflight != null)
    }

    /** Brings what a check has found to where it is seen, once. */
    private fun showAnswer(isThere: Boolean) {
        if (hadAnswer == false && isThere) {
            val card = view.findViewById<View>(R.id.choice)
            view.post { view.scrollTo(0, card.top + card.findViewById<View>(R.id.check).top) }
        }
        hadAnswer = isThere
    }

    /** The full one comes first; where there is no other, there is no choice. */
    private fun showScales(reductions: List<Scale>, chosen: String?) {
        view.see(R.id.scales_label, reductions.isNotEmpty())
        view.see(R.id.scales, reductions.isNotEmpty())
        val group = view.findViewById<RadioGroup>(R.id.scales)
        if (scales != reductions) {
            scales = reductions
            group.removeAllViews()
            addScale(group, null, context.getString(R.string.exp_scale_full))
            for (s in reductions) {
                addScale(group, s.name, context.getString(R.string.exp_scale_other, s.name, s.text.trim()))
            }
        }
        for (i in 0 until group.childCount) (group.getChildAt(i) as RadioButton).apply { isChecked = tag == chosen }
    }

    private fun addScale(group: RadioGroup, name: String?, words: String) {
        val button = LayoutInflater.from(context).inflate(R.layout.experiment_scale, group, false) as RadioButton
        button.id = View.generateViewId()
        button.text = words
        button.tag = name
        button.setOnClickListener { actions.scale(name) }
        group.addView(button)
    }

    private fun showSpeeds(now: ExperimentState) {
        val words = Speeds(context, actions.unit)
        val all = now.speeds.map { (mps, on) -> Triple(mps, on, words.fine(mps)) }
        for (id in listOf(R.id.speeds_label, R.id.speeds, R.id.another)) view.see(id, all.isNotEmpty())
        view.findViewById<TextView>(R.id.speeds_label).text = context.getString(R.string.exp_speeds, words.symbol)
        typed.hint = context.getString(R.string.exp_speed_hint, words.symbol)
        speeds.fill(all) { box, (mps, on, text) ->
            (box as CheckBox).text = text
            box.contentDescription = "$text ${words.symbol}"
            box.isChecked = on
            box.setOnClickListener {
                actions.speed(mps, box.isChecked)
                box.isChecked = actions.experiment.speeds[mps] == true // the last one stays
            }
        }
    }

    private fun showPlan(now: ExperimentState) {
        val planned = now.planned
        val planning = context.getString(R.string.exp_planning).takeIf { now.campaign?.refused == null }
        val instead = refusal(now) ?: planning
        view.tell(R.id.plan, planned?.let(::planText) ?: instead)
        val isRefused = planned == null && now.refused != null
        view.findViewById<TextView>(R.id.plan)
            .setTextColor(context.getColor(if (isRefused) R.color.bad else R.color.text))
        val others = planned?.deviations.orEmpty().joinToString("; ").ifEmpty { null }
        view.tell(
            R.id.deviations,
            others?.let { context.getString(R.string.exp_deviations, Speeds(context, actions.unit).inWords(it)) },
        )
    }

    private fun planText(p: Planned): String = listOf(
        context.resources.getQuantityString(R.plurals.exp_trials, p.trials, p.trials),
        context.getString(R.string.exp_time, duration(p.timeS)),
        p.roadM?.let { context.getString(R.string.exp_road, "%.1f".format(it / 1000)) }
            ?: context.getString(R.string.exp_no_road),
    ).joinToString(", ")

    private fun showNeeds(now: ExperimentState) {
        val isDrivable = now.campaign?.missing?.isEmpty() == true && now.campaign?.refused == null
        view.allow(R.id.check, isDrivable && !now.isChecking)
        view.findViewById<TextView>(R.id.check)
            .setText(if (now.isChecking) R.string.exp_checking else R.string.exp_check)
        view.tell(R.id.ready, now.preflight?.let { readyText(it, now.isCheckOld) })
        needs.fill(now.needs.filter { it.outcome != "met" }) { card, need ->
            val words = Speeds(context, actions.unit).inWords(needText(need))
            val isUnmet = need.outcome == "unmet"
            card.findViewById<TextView>(R.id.found).apply {
                text = if (isUnmet) words else context.getString(R.string.exp_unknown, words)
                setTextColor(context.getColor(if (isUnmet) R.color.bad else R.color.warn))
            }
            card.tell(R.id.cure, need.cure)
        }
        val met = now.needs.filter { it.outcome == "met" }.joinToString("; ", transform = ::needText).ifEmpty { null }
        view.tell(R.id.met, met?.let { context.getString(R.string.exp_met, it) })
    }

    private fun readyText(p: Preflight, isOld: Boolean): String {
        val unmet = p.needs.count { it.outcome == "unmet" }
        if (p.ready) return context.getString(if (isOld) R.string.exp_ready_once else R.string.exp_ready)
        return context.resources.getQuantityString(R.plurals.exp_unmet, unmet, unmet)
    }

    private fun needText(n: Need): String = n.node?.let { context.getString(R.string.exp_need, it, n.need, n.found) }
        ?: context.getString(R.string.exp_need_all, n.need, n.found)

    private fun showStart(now: ExperimentState) {
        view.allow(R.id.start, now.hindrance == null)
        val refusal = refusal(now).takeIf { now.planned != null }
        val isPlanRefused = now.hindrance == Hindrance.UNPLANNED && refusal(now) != null
        val why = if (isPlanRefused) Hindrance.REFUSED else now.hindrance
        val hindrance = why?.let { hindranceText(it, now) }
        view.tell(R.id.hindrance, listOfNotNull(refusal, hindrance).joinToString("\n").ifEmpty { null })
        view.see(R.id.take_back, now.starting != null)
    }

    private fun refusal(now: ExperimentState): String? =
        now.refused?.let { context.refusalText(it, Speeds(context, actions.unit)) }

    private fun hindranceText(h: Hindrance, now: ExperimentState): String = when (h) {
        Hindrance.UNPLANNED -> context.getString(R.string.exp_not_planned)
        Hindrance.REFUSED, Hindrance.NODES_MISSING -> context.getString(R.string.exp_not_drivable)
        Hindrance.UNCHECKED -> context.getString(R.string.exp_unchecked)
        Hindrance.UNREADY -> context.getString(R.string.exp_unready)
        Hindrance.RUN_UNDER_WAY -> context.getString(R.string.exp_under_way, now.underWay?.name.orEmpty())
        Hindrance.STARTING -> context.getString(R.string.exp_starting)
    }
}
