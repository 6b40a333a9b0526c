package dev.fieldmesh.app

import android.app.Activity
import android.app.AlertDialog
import android.os.Bundle
import android.widget.EditText
import dev.fieldmesh.core.app.TrialRow

/**
 * Asks what a person decides on a trial, and why. The question outlives a rotation with what was typed, and stays of
 * the attempt that it was asked of.
 */
internal class Deciding(private val activity: Activity, private val decided: (Decision) -> Unit) {
    /** [attempt] is null for a trial that was never driven. */
    internal data class Decision(
        val what: String,
        val run: String,
        val trial: Int,
        val attempt: Int?,
        val reason: String,
    )

    private var asked: Decision? = null
    private var shown: AlertDialog? = null

    private val typed get() = shown?.findViewById<EditText>(R.id.reason)?.text?.toString().orEmpty().trim()

    fun ask(run: String, trial: TrialRow) = ask(Decision("", run, trial.number, trial.attempt, ""))

    private fun ask(of: Decision) {
        asked = of
        val view = activity.layoutInflater.inflate(R.layout.decide, null)
        view.findViewById<EditText>(R.id.reason).setText(of.reason)
        val title = of.attempt?.let { activity.getString(R.string.trial_only, of.trial, it) }
        val question = AlertDialog.Builder(activity)
            .setTitle(title ?: activity.getString(R.string.decide_title, of.trial))
            .setView(view)
            .setNegativeButton(R.string.decide_skip) { _, _ -> decide("skip") }
        if (of.attempt != null) {
            question.setPositiveButton(R.string.decide_accept) { _, _ -> decide("accept") }
            question.setNeutralButton(R.string.decide_repeat) { _, _ -> decide("repeat") }
        }
        shown = question.show()
    }

    private fun decide(what: String) {
        decided(asked?.copy(what = what, reason = typed) ?: return)
    }

    fun save(out: Bundle) {
        val of = asked?.takeIf { shown?.isShowing == true } ?: return
        out.putStringArray(KEY, arrayOf(of.run, "${of.trial}", of.attempt?.toString(), typed))
    }

    fun restore(saved: Bundle) {
        val (run, trial, attempt, reason) = saved.getStringArray(KEY) ?: return
        ask(Decision("", run, trial.toInt(), attempt?.toInt(), reason))
    }

    /** Before the activity goes. */
    fun leave() {
        shown?.dismiss()
    }

    private companion object {
        const val KEY = "deciding"
    }
}
